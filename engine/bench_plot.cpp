#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/bench.h"

namespace onebit {
namespace {

constexpr double panel_width = 560, plot_height = 260, left = 64, top = 64, bottom = 86, legend_row = 20;
// told apart by people who do not see red and green, too
constexpr const char* colours[] = {"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb"};

std::string escaped(const std::string& text) {
    std::string result;
    for (const char c : printable(text)) {
        switch (c) {
            case '&':
                result += "&amp;";
                break;
            case '<':
                result += "&lt;";
                break;
            case '>':
                result += "&gt;";
                break;
            case '"':
                result += "&quot;";
                break;
            default:
                result += c;
        }
    }
    return result;
}

std::string coordinate(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", value);
    return text;
}

std::string text_at(double x, double y, const std::string& text, const char* anchor, int size) {
    return "<text x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\" text-anchor=\"" + anchor + "\" font-size=\"" +
           std::to_string(size) + "\">" + escaped(text) + "</text>\n";
}

std::string line_at(double x1, double y1, double x2, double y2, const char* colour) {
    return "<line x1=\"" + coordinate(x1) + "\" y1=\"" + coordinate(y1) + "\" x2=\"" + coordinate(x2) + "\" y2=\"" +
           coordinate(y2) + "\" stroke=\"" + colour + "\"/>\n";
}

// The next of 1, 2, 5, 10, 20 ... that is not below the value.
double round_up(double value) {
    if (!(value > 0) || !std::isfinite(value)) return 1;
    const double power = std::pow(10, std::floor(std::log10(value)));
    for (const double step : {1.0, 2.0, 5.0}) {
        if (step * power >= value) return step * power;
    }
    return 10 * power;
}

std::string axis_number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

struct Group {
    uint32_t tokens, depth;
    bool operator==(const Group&) const = default;
};

std::string panel(const BenchReport& report, BenchPhase phase, const std::string& title, double x0) {
    std::vector<Group> groups;
    double most = 0;
    for (const BenchCell& cell : report.cells) {
        if (cell.phase != phase) continue;
        const Group group{cell.tokens, cell.depth};
        if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
        most = std::max(most, spread_of(cell.samples).upper_quartile);
    }
    const double scale = round_up(most);
    const double x = x0 + left, width = panel_width - left - 16, base = top + plot_height;
    const auto height = [scale](double value) { return std::clamp(value / scale, 0.0, 1.0) * plot_height; };

    std::string svg = text_at(x0 + panel_width / 2, top - 16, title, "middle", 14);
    for (int i = 0; i <= 4; i++) {
        const double y = base - plot_height * i / 4;
        svg += line_at(x, y, x + width, y, i == 0 ? "#444444" : "#dddddd");
        svg += text_at(x - 6, y + 4, axis_number(scale * i / 4), "end", 11);
    }
    if (groups.empty()) return svg + text_at(x + width / 2, top + plot_height / 2, "not measured", "middle", 12);

    const double group_width = width / static_cast<double>(groups.size());
    const double bar = group_width * 0.8 / static_cast<double>(std::max<size_t>(report.devices.size(), 1));
    for (const BenchCell& cell : report.cells) {
        if (cell.phase != phase) continue;
        const auto g = std::ranges::find(groups, Group{cell.tokens, cell.depth}) - groups.begin();
        const auto d = std::ranges::find(report.devices, cell.device) - report.devices.begin();
        const Spread spread = spread_of(cell.samples);
        const double bar_x = x + group_width * (static_cast<double>(g) + 0.1) + bar * static_cast<double>(d);
        const double bar_height = height(spread.median), middle = bar_x + bar * 0.45;
        svg += "<rect x=\"" + coordinate(bar_x) + "\" y=\"" + coordinate(base - bar_height) + "\" width=\"" +
               coordinate(bar * 0.9) + "\" height=\"" + coordinate(bar_height) + "\" fill=\"" +
               colours[static_cast<size_t>(d) % std::size(colours)] + "\"/>\n";
        svg += line_at(middle, base - height(spread.lower_quartile), middle, base - height(spread.upper_quartile),
                       "#222222");
        svg += text_at(middle, base - height(spread.upper_quartile) - 4,
                       axis_number(std::round(spread.median * 10) / 10), "middle", 10);
    }
    for (size_t g = 0; g < groups.size(); g++) {
        const double middle = x + group_width * (static_cast<double>(g) + 0.5);
        svg += text_at(middle, base + 16, std::to_string(groups[g].tokens) + " tokens", "middle", 11);
        svg += text_at(middle, base + 30, "at depth " + std::to_string(groups[g].depth), "middle", 11);
    }
    return svg;
}

}  // namespace

std::string bench_to_svg(const BenchReport& report) {
    const double width = 2 * panel_width;
    const double height = top + plot_height + bottom + legend_row * static_cast<double>(report.devices.size());
    std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + coordinate(width) + "\" height=\"" +
                      coordinate(height) + "\" viewBox=\"0 0 " + coordinate(width) + " " + coordinate(height) +
                      "\" font-family=\"sans-serif\" fill=\"#222222\">\n"
                      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
    svg += text_at(width / 2, 24, report.model + ": tokens per second, median and quartiles", "middle", 16);
    svg += panel(report, BenchPhase::prefill, "prefill (reading the prompt)", 0);
    svg += panel(report, BenchPhase::decode, "decode (writing the answer)", panel_width);
    for (size_t d = 0; d < report.devices.size(); d++) {
        const double y = top + plot_height + bottom - 34 + legend_row * static_cast<double>(d);
        svg += "<rect x=\"" + coordinate(left) + "\" y=\"" + coordinate(y) + "\" width=\"12\" height=\"12\" fill=\"" +
               colours[d % std::size(colours)] + "\"/>\n";
        std::string label = report.devices[d];
        for (const auto& [key, value] : report.conditions) {
            if (key == "device" && value.starts_with(label + " (")) label = value;
        }
        for (const BenchCheck& check : report.checks) {
            if (check.device == report.devices[d] && !check.faults.empty()) label += ": WRONG RESULTS";
        }
        svg += text_at(left + 18, y + 10, label, "start", 12);
    }
    return svg + "</svg>\n";
}

}  // namespace onebit
