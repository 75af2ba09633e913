// Measures the members of an engine's tandem while the server is idle, and sets the route from what was measured.
//
// A thread of its own computes on a context of its own, over the server's model: the server's context is never touched.
// The two never compute at one time. A llama_decode of the server waits until the calibration has ended its present
// graph, and after that the calibration waits for the next second without work.
#pragma once

#include <cstdint>
#include <string>

#include "llama.h"

namespace onebit {

struct HeartbeatPage;

struct CalibrationRequest {
    std::string device;           // the tandem's ggml name
    std::string owner;            // member 0
    std::string decode, prefill;  // its members
    std::string key;              // under which the table is kept; empty: it is not
};

// Once, before start_calibration().
void arrange_calibration(CalibrationRequest request);

// Starts the thread, if a calibration was arranged. page tells when the server is ready and how many requests are in
// flight; it must stay valid for ever.
void start_calibration(const HeartbeatPage& page);

// What the functions that stand before llama.cpp's own call. context_made: the first context of a model with memory is
// the server's. Any thread.
void calibration_context_made(llama_context* context, llama_model* model, const llama_context_params& parameters);
void calibration_context_gone(const llama_context* context);  // returns when the calibration has ended
// Around each llama_decode: the calibration makes way for it.
void calibration_decode_begins();
void calibration_decode_ended();

// Whether the calling thread is the calibration's, whose contexts are not the server's.
bool is_calibration_thread();

}  // namespace onebit
