#include "ops/testing/op_case.h"

namespace hierarchos {
namespace {

using Registered = std::vector<std::pair<std::string, void (*)(OpCases&)>>;

Registered& registry() {
  static Registered cases;
  return cases;
}

}  // namespace

OpInput OpInput::normal(DType dtype, Shape shape, double scale, double offset) {
  OpInput in;
  in.type = Type(dtype, shape);
  in.scale = scale;
  in.offset = offset;
  return in;
}

OpInput OpInput::uniform(DType dtype, Shape shape, double low, double high) {
  OpInput in;
  in.type = Type(dtype, shape);
  in.fill = Fill::Uniform;
  in.scale = (high - low) / 2;
  in.offset = (high + low) / 2;
  return in;
}

OpInput OpInput::integers(Shape shape, int64_t low, int64_t high) {
  OpInput in;
  in.type = Type(DType::I32, shape);
  in.fill = Fill::Integers;
  in.low = low;
  in.high = high;
  return in;
}

OpInput OpInput::given(DType dtype, Shape shape, std::vector<double> values) {
  OpInput in;
  in.type = Type(dtype, shape);
  in.fill = Fill::Values;
  in.values = std::move(values);
  return in;
}

OpCaseRegistration::OpCaseRegistration(const char* op, void (*make)(OpCases&)) { registry().emplace_back(op, make); }

const Registered& registered_op_cases() { return registry(); }

}  // namespace hierarchos
