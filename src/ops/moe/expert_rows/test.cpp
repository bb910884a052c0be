#include "ops/moe/expert_rows/expert_rows.h"
#include "ops/testing/op_case.h"

namespace hierarchos::ops {
namespace {

OpCase make(OpInput experts, int64_t count, int64_t tile, bool orders, const std::string& what) {
  OpCase c;
  c.name =
      fmt::format("{} of {} by {}{} {}", experts.type.shape.to_string(), count, tile, orders ? " orders" : "", what);
  c.inputs = {std::move(experts)};
  c.build = [=](Graph&, const std::vector<Value>& in) {
    const ExpertRows rows = expert_rows(in[0], count, tile, orders);
    std::vector<Value> results = {rows.token, rows.row, rows.tile_expert};
    if (orders) results.insert(results.end(), {*rows.token_order, *rows.row_order});
    return results;
  };
  c.grad = false;
  return c;
}

}  // namespace

OP_CASES(expert_rows) {
  for (bool orders : {false, true}) {
    cases.push_back(make(OpInput::integers(Shape{5, 2}, 0, 4), 4, 2, orders, "small"));
    cases.push_back(make(OpInput::integers(Shape{1, 2}, 0, 8), 8, 1, orders, "decoding"));
    cases.push_back(make(OpInput::integers(Shape{150, 4}, 0, 60), 60, 16, orders, "past a group of entries"));
    cases.push_back(make(OpInput::integers(Shape{40, 8}, 0, 300), 300, 4, orders, "past a group of experts"));
    cases.push_back(make(OpInput::integers(Shape{70, 3}, -2, 9), 7, 8, orders, "some go nowhere"));
    cases.push_back(make(OpInput::integers(Shape{9, 2}, -5, 0), 3, 4, orders, "none goes anywhere"));
    cases.push_back(make(OpInput::integers(Shape{33, 2}, 1, 2), 3, 8, orders, "all to one"));
    cases.push_back(make(OpInput::integers(Shape{0, 2}, 0, 2), 2, 8, orders, "no tokens"));
  }
  OpCase bad = make(OpInput::normal(DType::F32, Shape{3, 2}), 4, 2, false, "refuses numbers that are no indices");
  bad.expect_error = "experts must be i32";
  cases.push_back(bad);
}

}  // namespace hierarchos::ops
