/* libloom: compiles the bitcode of one kernel for one chip and one set of constants. It is the only library that holds
 * LLVM, and is loaded with dlopen by hrx/loom/library.h when an image is missing; everything else of Loom (checks of
 * names and ranges, threads, the disk cache) is on the other side of this interface, in C++.
 *
 * Threads   Every function may be called from any thread at any time.
 * Ownership A request and all it points to stay the caller's; an image is freed with loom_image_free.
 * Errors    No input ends the process. What LLVM would end it for becomes LOOM_FAILED, and costs the memory that the
 *           compilation held until then. */
#ifndef LOOM_H
#define LOOM_H

#include <stddef.h>
#include <stdint.h>

#define LOOM_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with every change of this interface. */
#define LOOM_VERSION 1u
LOOM_API uint32_t loom_version(void);
/* What decides, beside the request, which image comes out: LLVM's version and a digest of the compiler's sources. */
LOOM_API const char* loom_compiler(void);

typedef enum loom_result {
    LOOM_OK = 0,
    LOOM_INVALID_ARGUMENT = 1,
    LOOM_NOT_FOUND = 2,    /* no such kernel in the bitcode */
    LOOM_UNSUPPORTED = 3,  /* a target that is not known */
    LOOM_INVALID_DATA = 4, /* damaged bitcode */
    LOOM_OUT_OF_MEMORY = 5,
    LOOM_FAILED = 6, /* LLVM cannot compile it */
} loom_result;

typedef struct loom_error {
    char subject[192], expected[320], found[320];
} loom_error;

/* The value of an argument that the image reads at run time. */
#define LOOM_RUN_TIME UINT64_MAX
typedef struct loom_constant {
    const char* name; /* of LOOM_ARGUMENT or LOOM_OPTION */
    uint64_t value;   /* 0 to 2^32 - 1; not compared with the declared range here */
} loom_constant;

typedef enum loom_output {
    LOOM_IMAGE = 0,    /* HSACO or PTX */
    LOOM_ASSEMBLY = 1, /* text; the same as the image for NVIDIA */
    LOOM_LLVM = 2,     /* text: LLVM's form of the optimised kernel, before code generation */
} loom_output;

typedef struct loom_request {
    const void* bitcode; /* a sealed module as bitcode_seal.h describes, with one kernel */
    size_t bitcode_bytes;
    const char* kernel;
    const char* target; /* "gfx1151", "sm_90" */
    uint32_t workgroup; /* work-items of a group, 1 to 1024 */
    uint32_t constant_count;
    const loom_constant* constants; /* all that the kernel uses; others are ignored */
    uint32_t output;                /* loom_output */
} loom_request;

/* Nanoseconds of the calling thread's CPU time. */
typedef struct loom_times {
    uint64_t parse, substitute, optimise, generate, link;
} loom_times;

typedef struct loom_image {
    void* data;
    size_t size;
    loom_times times;
} loom_image;

/* image and error: filled as the result says; neither may be NULL. */
LOOM_API loom_result loom_compile(const loom_request* request, loom_image* image, loom_error* error);
LOOM_API void loom_image_free(loom_image* image);

/* The names of the targets, NULL past the end. */
LOOM_API const char* loom_target(uint32_t index);

#ifdef __cplusplus
}
#endif
#endif /* LOOM_H */
