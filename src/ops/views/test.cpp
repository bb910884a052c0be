#include "ops/pointwise/pointwise.h"
#include "ops/testing/op_case.h"
#include "ops/views/views.h"

namespace hierarchos::ops {
namespace {

using Build = std::function<std::vector<Value>(Graph&, const std::vector<Value>&)>;

OpCase make(const std::string& name, std::vector<OpInput> inputs, Build build) {
  OpCase c;
  c.name = name;
  c.inputs = std::move(inputs);
  c.build = std::move(build);
  c.tolerance = 0;
  return c;
}

}  // namespace

OP_CASES(views) {
  const auto add_case = [&](const std::string& name, Shape shape, const std::function<Value(Value)>& view) {
    for (DType dtype : {DType::F32, DType::BF16})
      cases.push_back(make(fmt::format("{} {}", name, name_of(dtype)), {OpInput::normal(dtype, shape)},
                           [view](Graph&, const std::vector<Value>& in) { return std::vector<Value>{view(in[0])}; }));
    cases.push_back(make(name + " i32", {OpInput::integers(shape, -9, 9)},
                         [view](Graph&, const std::vector<Value>& in) { return std::vector<Value>{view(in[0])}; }));
  };
  add_case("reshape", Shape{4, 6}, [](Value x) { return reshape(x, Shape{2, 2, 6}); });
  add_case("reshape of a transpose", Shape{5, 7}, [](Value x) { return reshape(transpose(x), Shape{35}); });
  add_case("reshape of nothing", Shape{0, 3}, [](Value x) { return reshape(x, Shape{3, 0}); });
  add_case("reshape to a scalar", Shape{1, 1}, [](Value x) { return reshape(x, Shape{}); });
  add_case("permute", Shape{3, 4, 5}, [](Value x) { return permute(x, {2, 0, 1}); });
  add_case("permute of six axes", Shape{2, 3, 2, 1, 3, 2}, [](Value x) { return permute(x, {5, 3, 1, 0, 4, 2}); });
  add_case("transpose, large", Shape{130, 70}, [](Value x) { return transpose(x); });
  add_case("permute, large", Shape{3, 50, 2, 70}, [](Value x) { return permute(x, {2, 3, 0, 1}); });
  add_case("slice of the last axis", Shape{6, 9}, [](Value x) { return slice(x, -1, 2, 7); });
  add_case("slice of the first axis", Shape{6, 9}, [](Value x) { return slice(x, 0, 5, 6); });
  add_case("an empty slice", Shape{6, 9}, [](Value x) { return slice(x, 0, 3, 3); });
  add_case("expand", Shape{3, 1}, [](Value x) { return expand(x, Shape{2, 3, 4}); });
  add_case("expand of a scalar", Shape{}, [](Value x) { return expand(x, Shape{5}); });
  add_case("slice, split, permute, expand", Shape{6, 4, 10}, [](Value x) {
    const auto parts = split(slice(x, 2, 1, 9), 1, {1, 3});
    return expand(permute(parts[1], {1, 0, 2}), Shape{2, 3, 6, 8});
  });

  for (DType dtype : {DType::F32, DType::BF16}) {
    auto c = make(fmt::format("perf transpose [1536, 2048] {}", name_of(dtype)), {OpInput::normal(dtype, Shape{1536, 2048})},
                  [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{transpose(in[0])}; });
    c.perf = true;
    cases.push_back(std::move(c));
  }

  const auto refused = [&](const std::string& name, Shape shape, const std::function<Value(Value)>& view, const std::string& error) {
    auto c = make("refuses " + name, {OpInput::normal(DType::F32, shape)},
                  [view](Graph&, const std::vector<Value>& in) { return std::vector<Value>{view(in[0])}; });
    c.expect_error = error;
    cases.push_back(std::move(c));
  };
  refused("a reshape that does not fit", Shape{4, 6}, [](Value x) { return reshape(x, Shape{5, 5}); }, "24 elements");
  refused("axes twice", Shape{4, 6}, [](Value x) { return permute(x, {0, 0}); }, "no permutation");
  refused("a slice beyond the end", Shape{4, 6}, [](Value x) { return slice(x, 1, 3, 7); }, "no part of axis 1");
  refused("an axis that is not there", Shape{4, 6}, [](Value x) { return slice(x, 2, 0, 1); }, "axis 2");
  refused("an expand that shrinks", Shape{4, 6}, [](Value x) { return expand(x, Shape{4, 1}); }, "does not expand");
  refused("parts that do not cover", Shape{4, 6}, [](Value x) { return split(x, 1, {2, 3})[0]; }, "do not cover");
}

OP_CASES(concat) {
  struct Join {
    std::vector<Shape> shapes;
    int axis;
  };
  const Join joins[] = {
      {{Shape{3}, Shape{4}}, 0},
      {{Shape{2, 3}, Shape{2, 5}, Shape{2, 1}}, 1},
      {{Shape{2, 3}, Shape{0, 3}, Shape{4, 3}}, 0},
      {{Shape{2, 3, 4}, Shape{2, 2, 4}}, -2},
      {{Shape{40, 513}, Shape{40, 700}}, 1},
      {{Shape{0, 2}, Shape{0, 3}}, 1},
      {{Shape{300, 65}, Shape{200, 65}, Shape{1, 65}, Shape{17, 65}}, 0},
  };
  for (const Join& join : joins)
    for (DType dtype : {DType::F32, DType::F16, DType::I32}) {
      std::string name = fmt::format("axis {} {}", join.axis, name_of(dtype));
      std::vector<OpInput> inputs;
      for (const Shape& s : join.shapes) {
        name += " " + s.to_string();
        inputs.push_back(dtype == DType::I32 ? OpInput::integers(s, -50, 50) : OpInput::normal(dtype, s));
      }
      cases.push_back(make(name, std::move(inputs),
                           [axis = join.axis](Graph&, const std::vector<Value>& in) { return std::vector<Value>{concat(in, axis)}; }));
    }
  cases.push_back(make("strided parts", {OpInput::normal(DType::F32, Shape{7, 5}), OpInput::normal(DType::F32, Shape{5, 8})},
                       [](Graph&, const std::vector<Value>& in) {
                         return std::vector<Value>{concat({transpose(in[0]), slice(in[1], 1, 2, 6), slice(in[1], 1, 0, 1)}, 1)};
                       }));
  cases.push_back(make("rotated halves", {OpInput::normal(DType::BF16, Shape{6, 3, 16})},
                       [](Graph&, const std::vector<Value>& in) {
                         const auto halves = split(in[0], 2, {8, 8});
                         return std::vector<Value>{concat({neg(halves[1]), halves[0]}, 2)};
                       }));
  const auto refused = [&](const std::string& name, std::vector<OpInput> inputs, int axis, const std::string& error) {
    auto c = make("refuses " + name, std::move(inputs),
                  [axis](Graph&, const std::vector<Value>& in) { return std::vector<Value>{concat(in, axis)}; });
    c.expect_error = error;
    cases.push_back(std::move(c));
  };
  refused("other extents", {OpInput::normal(DType::F32, Shape{2, 3}), OpInput::normal(DType::F32, Shape{3, 3})}, 1, "differ on other axes");
  refused("other types", {OpInput::normal(DType::F32, Shape{2}), OpInput::normal(DType::F16, Shape{2})}, 0, "f32 and f16");
  refused("an axis that is not there", {OpInput::normal(DType::F32, Shape{2}), OpInput::normal(DType::F32, Shape{2})}, 1, "axis 1");
  auto perf = make("perf [2048, 576] + [2048, 1536] f32", {OpInput::normal(DType::F32, Shape{2048, 576}), OpInput::normal(DType::F32, Shape{2048, 1536})},
                   [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{concat(in, 1)}; });
  perf.perf = true;
  cases.push_back(std::move(perf));
}

}  // namespace hierarchos::ops
