#include <algorithm>
#include <numeric>

#include "ops/index/gather/gather.h"
#include "ops/testing/op_case.h"

namespace hierarchos::ops {
namespace {

// Ids, and the places sorted by them.
std::pair<OpInput, OpInput> ids_and_order(int64_t count, int64_t low, int64_t high) {
  std::vector<double> ids, order(static_cast<size_t>(count));
  uint64_t state = 88172645463325252u;
  for (int64_t t = 0; t < count; ++t) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    ids.push_back(static_cast<double>(low + static_cast<int64_t>(state % static_cast<uint64_t>(high - low))));
  }
  std::iota(order.begin(), order.end(), 0.0);
  std::stable_sort(order.begin(), order.end(), [&](double a, double b) { return ids[static_cast<size_t>(a)] < ids[static_cast<size_t>(b)]; });
  return {OpInput::given(DType::I32, Shape{count}, ids), OpInput::given(DType::I32, Shape{count}, order)};
}

OpCase make(Shape table, int64_t count, DType dtype, int64_t low, int64_t high, int64_t padding = -1) {
  OpCase c;
  c.name = fmt::format("{} {} ids {} from [{}, {}) padding {}", table.to_string(), name_of(dtype), count, low, high, padding);
  const auto [ids, order] = ids_and_order(count, low, high);
  c.inputs = {OpInput::normal(dtype, table), ids, order};
  c.build = [padding](Graph&, const std::vector<Value>& in) { return std::vector<Value>{gather(in[0], in[1], in[2], padding)}; };
  c.tolerance = 0;
  c.grad = table.elements() < 5000 && padding < 0;
  return c;
}

}  // namespace

OP_CASES(gather) {
  for (DType dtype : {DType::F32, DType::BF16, DType::F16}) {
    cases.push_back(make(Shape{11, 6}, 9, dtype, 0, 11));
    cases.push_back(make(Shape{5, 1}, 40, dtype, 0, 5));
    cases.push_back(make(Shape{300, 576}, 64, dtype, 0, 300));
  }
  cases.push_back(make(Shape{7, 33}, 20, DType::F32, -3, 10));  // ids outside give zeros
  cases.push_back(make(Shape{7, 33}, 20, DType::F32, 0, 7, 2));
  cases.push_back(make(Shape{7, 2, 3}, 5, DType::F32, 0, 7));
  cases.push_back(make(Shape{7}, 12, DType::F32, 0, 7));
  cases.push_back(make(Shape{7, 4}, 0, DType::F32, 0, 7));
  cases.push_back(make(Shape{7, 0}, 3, DType::F32, 0, 7));
  {
    OpCase c = make(Shape{9, 3}, 5, DType::F32, 0, 9);
    c.name = "a table of integers";
    c.inputs[0] = OpInput::integers(Shape{9, 3}, -99, 99);
    cases.push_back(std::move(c));
  }
  for (Storage storage : {Storage::Q4_0, Storage::Q4_1, Storage::Q5_0, Storage::Q5_1, Storage::Q8_0, Storage::Q2_K, Storage::Q3_K,
                          Storage::Q4_K, Storage::Q5_K, Storage::Q6_K, Storage::IQ4_NL}) {
    OpCase c = make(Shape{13, 512}, 21, DType::F32, -1, 14);
    c.name = fmt::format("[13, 512] {}", name_of(storage));
    c.inputs[0].type.storage = storage;
    c.grad = false;
    c.tolerance = 2e-7;
    cases.push_back(std::move(c));
  }
  const auto refused = [&](const std::string& name, OpInput table, OpInput ids, const std::string& error) {
    OpCase c;
    c.name = "refuses " + name;
    c.inputs = {std::move(table), std::move(ids)};
    c.build = [](Graph&, const std::vector<Value>& in) { return std::vector<Value>{gather(in[0], in[1])}; };
    c.expect_error = error;
    cases.push_back(std::move(c));
  };
  refused("floating ids", OpInput::normal(DType::F32, Shape{5, 4}), OpInput::normal(DType::F32, Shape{3}), "ids must be i32");
  refused("a matrix of ids", OpInput::normal(DType::F32, Shape{5, 4}), OpInput::integers(Shape{3, 1}, 0, 5), "ids must be i32 [T]");
  refused("a table without rows", OpInput::normal(DType::F32, Shape{}), OpInput::integers(Shape{3}, 0, 5), "no rows");
  OpCase perf = make(Shape{49152, 576}, 2048, DType::F32, 0, 49152);
  perf.name = "perf " + perf.name;
  perf.perf = true;
  cases.push_back(std::move(perf));
}

}  // namespace hierarchos::ops
