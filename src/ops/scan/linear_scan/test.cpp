#include <cmath>

#include "ops/scan/linear_scan/linear_scan.h"
#include "ops/testing/op_case.h"

namespace hierarchos::ops {
namespace {

struct Options {
  std::vector<double> offsets = {0, 5};  // of the segments
  int64_t tokens = 5, heads = 2, keys = 8, values = 8;
  bool uw = false, by_channel = false;
  DType dtype = DType::F32;
};

OpCase make(const Options& o) {
  OpCase c;
  const auto segments = static_cast<int64_t>(o.offsets.size()) - 1;
  c.name = fmt::format("T={} B={} H={} {}x{} {}{}{}", o.tokens, segments, o.heads, o.values, o.keys, name_of(o.dtype),
                       o.uw ? " uw" : "", o.by_channel ? " by channel" : "");
  const Shape row{o.tokens, o.heads, o.keys};
  // Transitions shrink the state, as trained models' do: decays below one, u·wᵀ small.
  const double small = 0.7 / std::max(1.0, std::sqrt(static_cast<double>(o.keys)));
  c.inputs = {OpInput::normal(DType::F32, Shape{segments, o.heads, o.values, o.keys}),
              OpInput::normal(o.dtype, row),
              OpInput::normal(o.dtype, row),
              OpInput::normal(o.dtype, Shape{o.tokens, o.heads, o.values}),
              OpInput::uniform(DType::F32, o.by_channel ? row : Shape{o.tokens, o.heads}, -1.5, -0.01),
              OpInput::given(DType::I32, Shape{segments + 1}, o.offsets)};
  if (o.uw) {
    c.inputs.push_back(OpInput::normal(o.dtype, row, small));
    c.inputs.push_back(OpInput::normal(o.dtype, row, small));
  }
  c.build = [uw = o.uw](Graph&, const std::vector<Value>& v) {
    LinearScanSpec spec{v[0], v[1], v[2], v[3], v[4], v[5], {}, {}};
    if (uw) {
      spec.u = v[6];
      spec.w = v[7];
    }
    const LinearScanResult result = linear_scan(spec);
    return std::vector<Value>{result.y, result.state};
  };
  c.tolerance = o.dtype == DType::F32 ? 5e-6 : o.dtype == DType::F16 ? 1e-3 : 6e-3;
  c.grad = o.tokens * o.heads * (o.keys + o.values) <= 2500;
  return c;
}

OpCase error(const std::string& name, const std::string& text, const std::function<void(OpCase&)>& spoil) {
  OpCase c = make({});
  c.name = name;
  spoil(c);
  c.expect_error = text;
  return c;
}

}  // namespace

OP_CASES(linear_scan) {
  for (bool uw : {false, true})
    for (bool by_channel : {false, true}) {
      const auto add = [&](Options o) {
        o.uw = uw;
        o.by_channel = by_channel;
        cases.push_back(make(o));
      };
      add({});
      add({.offsets = {0, 1}, .tokens = 1, .heads = 1, .keys = 1, .values = 1});
      add({.offsets = {0, 4, 4, 11, 12}, .tokens = 12, .keys = 5, .values = 7});
      add({.offsets = {0, 30, 50}, .tokens = 50, .heads = 1, .keys = 16, .values = 3});
      add({.offsets = {0, 9, 20}, .tokens = 20, .heads = 1, .keys = 3, .values = 33});
      add({.offsets = {2, 6, 9}, .tokens = 12, .keys = 4, .values = 4});  // rows that no segment has
      add({.offsets = {0, 0}, .tokens = 0});
      add({.offsets = {0}, .tokens = 0});
      add({.offsets = {0, 3}, .tokens = 3, .keys = 0, .values = 2});
      add({.offsets = {0, 3}, .tokens = 3, .keys = 2, .values = 0});
      add({.offsets = {0, 7, 8}, .tokens = 8, .keys = 64, .values = 64});
      add({.offsets = {0, 6}, .tokens = 6, .keys = 20, .values = 90, .dtype = DType::BF16});
      add({.offsets = {0, 6}, .tokens = 6, .keys = 20, .values = 10, .dtype = DType::F16});
      add({.offsets = {0, 120, 300}, .tokens = 300, .heads = 3, .keys = 32, .values = 24});
    }

  cases.push_back(error("k of another shape", "k must be", [](OpCase& c) { c.inputs[2].type.shape[2] = 9; }));
  cases.push_back(error("v of other tokens", "v must be", [](OpCase& c) { c.inputs[3].type.shape[0] = 4; }));
  cases.push_back(
      error("decay of another shape", "log_decay must be", [](OpCase& c) { c.inputs[4].type.shape[1] = 3; }));
  cases.push_back(error("state of other segments", "state must be", [](OpCase& c) { c.inputs[0].type.shape[0] = 2; }));
  cases.push_back(error("floating offsets", "offsets must be", [](OpCase& c) { c.inputs[5].type.dtype = DType::F32; }));

  for (bool uw : {false, true}) {
    OpCase c =
        make({.offsets = {0, 512}, .tokens = 512, .heads = 12, .keys = 64, .values = 64, .uw = uw, .by_channel = true});
    c.name += " perf";
    c.perf = true;
    c.grad = true;
    cases.push_back(c);
    c = make({.offsets = {0, 1}, .tokens = 1, .heads = 12, .keys = 64, .values = 64, .uw = uw, .by_channel = true});
    c.name += " decode perf";
    c.perf = true;
    c.grad = false;
    cases.push_back(c);
  }
}

}  // namespace hierarchos::ops
