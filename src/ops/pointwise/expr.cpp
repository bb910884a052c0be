#include "ops/pointwise/expr.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <unordered_map>

#include "base/error.h"

namespace hierarchos {
namespace {

struct OpInfo {
  PointwiseOp op;
  std::string_view name;
  int arity;
};

constexpr OpInfo kOps[] = {
    {PointwiseOp::Const, "const", 0},       {PointwiseOp::IConst, "iconst", 0},
    {PointwiseOp::Add, "add", 2},           {PointwiseOp::Sub, "sub", 2},
    {PointwiseOp::Mul, "mul", 2},           {PointwiseOp::Div, "div", 2},
    {PointwiseOp::Min, "min", 2},           {PointwiseOp::Max, "max", 2},
    {PointwiseOp::Neg, "neg", 1},           {PointwiseOp::Abs, "abs", 1},
    {PointwiseOp::Sign, "sign", 1},         {PointwiseOp::Exp, "exp", 1},
    {PointwiseOp::Log, "log", 1},           {PointwiseOp::Sqrt, "sqrt", 1},
    {PointwiseOp::Rsqrt, "rsqrt", 1},       {PointwiseOp::Recip, "recip", 1},
    {PointwiseOp::Square, "square", 1},     {PointwiseOp::Tanh, "tanh", 1},
    {PointwiseOp::Sigmoid, "sigmoid", 1},   {PointwiseOp::Silu, "silu", 1},
    {PointwiseOp::Gelu, "gelu", 1},         {PointwiseOp::GeluTanh, "gelu_tanh", 1},
    {PointwiseOp::Relu, "relu", 1},         {PointwiseOp::Erf, "erf", 1},
    {PointwiseOp::Sin, "sin", 1},           {PointwiseOp::Cos, "cos", 1},
    {PointwiseOp::Softplus, "softplus", 1}, {PointwiseOp::Floor, "floor", 1},
    {PointwiseOp::Lt, "lt", 2},             {PointwiseOp::Le, "le", 2},
    {PointwiseOp::Eq, "eq", 2},             {PointwiseOp::Ne, "ne", 2},
    {PointwiseOp::And, "and", 2},           {PointwiseOp::Or, "or", 2},
    {PointwiseOp::Not, "not", 1},           {PointwiseOp::Select, "select", 3},
    {PointwiseOp::IsFinite, "is_finite", 1}, {PointwiseOp::Clamp, "clamp", 3},
    {PointwiseOp::ToFloat, "to_float", 1},  {PointwiseOp::ToInt, "to_int", 1},
};

constexpr bool ops_in_order() {
  for (size_t i = 0; i < std::size(kOps); ++i)
    if (static_cast<size_t>(kOps[i].op) != i) return false;
  return true;
}
static_assert(ops_in_order());

const std::unordered_map<std::string_view, PointwiseOp>& ops_by_name() {
  static const auto map = [] {
    std::unordered_map<std::string_view, PointwiseOp> m;
    for (const OpInfo& info : kOps) m.emplace(info.name, info.op);
    return m;
  }();
  return map;
}

std::string number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return fmt::format("{}", value);  // shortest form that reads back the same
}

class Parser {
 public:
  Parser(std::string_view text, int inputs) : text_(text) { expr_.inputs = inputs; }

  PointwiseExpr run() {
    if (text_.empty()) fail("it is empty");
    while (true) {
      statement();
      if (at_ == text_.size()) break;
      want(';');
    }
    if (expr_.results.empty()) fail("it has no result");
    for (int32_t r : expr_.results)
      if (r < 0) fail("a result between o0 and the last is missing");
    return std::move(expr_);
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw UserError("pointwise expression \"{}\": {} (character {})", text_, what, at_);
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void want(char c) {
    if (peek() != c) fail("something is missing or out of place");
    ++at_;
  }
  int32_t index() {
    int32_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) fail("an index is missing");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }
  double immediate() {
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("a number is missing");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }
  std::string_view word() {
    const size_t begin = at_;
    while ((peek() >= 'a' && peek() <= 'z') || peek() == '_') ++at_;
    return text_.substr(begin, at_ - begin);
  }
  // i<n>, t<n>
  int32_t reg() {
    const char kind = peek();
    ++at_;
    if (kind == 'i') {
      const int32_t i = index();
      if (i >= expr_.inputs) fail("there are fewer operands");
      return i;
    }
    if (kind != 't') fail("an operand or a register is missing");
    const int32_t t = index();
    if (static_cast<size_t>(t) >= registers_.size()) fail("a register is read before it is written");
    return registers_[static_cast<size_t>(t)];
  }
  bool at_register() const {
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    return (peek() == 'i' || peek() == 't') && next >= '0' && next <= '9';
  }

  int32_t value() {
    if (at_register()) return reg();
    const auto found = ops_by_name().find(word());
    if (found == ops_by_name().end()) fail("there is no such operation");
    PointwiseInstr instr;
    instr.op = found->second;
    want('(');
    if (instr.op == PointwiseOp::Const || instr.op == PointwiseOp::IConst) {
      instr.value = immediate();
    } else {
      int32_t* operands[] = {&instr.a, &instr.b, &instr.c};
      for (int i = 0; i < arity_of(instr.op); ++i) {
        if (i > 0) want(',');
        *operands[i] = reg();
      }
    }
    want(')');
    expr_.code.push_back(instr);
    return expr_.inputs + static_cast<int32_t>(expr_.code.size()) - 1;
  }

  void statement() {
    const char kind = peek();
    if (kind != 't' && kind != 'o') fail("a statement begins with t<n>= or o<n>=");
    ++at_;
    const int32_t n = index();
    want('=');
    const int32_t r = value();
    if (kind == 't') {
      if (static_cast<size_t>(n) != registers_.size()) fail("registers are written in order");
      registers_.push_back(r);
    } else {
      if (static_cast<size_t>(n) >= expr_.results.size()) expr_.results.resize(static_cast<size_t>(n) + 1, -1);
      if (expr_.results[static_cast<size_t>(n)] >= 0) fail("a result is written twice");
      expr_.results[static_cast<size_t>(n)] = r;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  PointwiseExpr expr_;
  std::vector<int32_t> registers_;  // t<n> → register
};

bool is_float_only(PointwiseOp op) {
  switch (op) {
    case PointwiseOp::Div:
    case PointwiseOp::Exp:
    case PointwiseOp::Log:
    case PointwiseOp::Sqrt:
    case PointwiseOp::Rsqrt:
    case PointwiseOp::Recip:
    case PointwiseOp::Tanh:
    case PointwiseOp::Sigmoid:
    case PointwiseOp::Silu:
    case PointwiseOp::Gelu:
    case PointwiseOp::GeluTanh:
    case PointwiseOp::Erf:
    case PointwiseOp::Sin:
    case PointwiseOp::Cos:
    case PointwiseOp::Softplus:
    case PointwiseOp::Floor:
    case PointwiseOp::IsFinite: return true;
    default: return false;
  }
}

double evaluate_one(const PointwiseInstr& instr, double a, double b, double c) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  switch (instr.op) {
    case PointwiseOp::Const:
    case PointwiseOp::IConst: return instr.value;
    case PointwiseOp::Add: return a + b;
    case PointwiseOp::Sub: return a - b;
    case PointwiseOp::Mul: return a * b;
    case PointwiseOp::Div: return a / b;
    case PointwiseOp::Min: return std::isnan(a) || std::isnan(b) ? kNaN : b < a ? b : a;
    case PointwiseOp::Max: return std::isnan(a) || std::isnan(b) ? kNaN : a < b ? b : a;
    case PointwiseOp::Neg: return -a;
    case PointwiseOp::Abs: return std::fabs(a);
    case PointwiseOp::Sign: return static_cast<double>((a > 0) - (a < 0));
    case PointwiseOp::Exp: return std::exp(a);
    case PointwiseOp::Log: return std::log(a);
    case PointwiseOp::Sqrt: return std::sqrt(a);
    case PointwiseOp::Rsqrt: return 1 / std::sqrt(a);
    case PointwiseOp::Recip: return 1 / a;
    case PointwiseOp::Square: return a * a;
    case PointwiseOp::Tanh: return std::tanh(a);
    case PointwiseOp::Sigmoid: return 1 / (1 + std::exp(-a));
    case PointwiseOp::Silu: return a / (1 + std::exp(-a));
    case PointwiseOp::Gelu: return 0.5 * a * (1 + std::erf(a / std::numbers::sqrt2));
    case PointwiseOp::GeluTanh: {
      const double inner = std::numbers::sqrt2 * std::numbers::inv_sqrtpi * (a + 0.044715 * a * a * a);
      return 0.5 * a * (1 + std::tanh(inner));
    }
    case PointwiseOp::Relu: return a < 0 ? 0 : a;
    case PointwiseOp::Erf: return std::erf(a);
    case PointwiseOp::Sin: return std::sin(a);
    case PointwiseOp::Cos: return std::cos(a);
    case PointwiseOp::Softplus: return a > 20 ? a : std::log1p(std::exp(a));
    case PointwiseOp::Floor: return std::floor(a);
    case PointwiseOp::Lt: return a < b;
    case PointwiseOp::Le: return a <= b;
    case PointwiseOp::Eq: return a == b;
    case PointwiseOp::Ne: return a != b;
    case PointwiseOp::And: return a != 0 && b != 0;
    case PointwiseOp::Or: return a != 0 || b != 0;
    case PointwiseOp::Not: return a == 0;
    case PointwiseOp::Select: return a != 0 ? b : c;
    case PointwiseOp::IsFinite: return std::isfinite(a);
    case PointwiseOp::Clamp: return !std::isfinite(a) ? a : a < b ? b : a > c ? c : a;
    case PointwiseOp::ToFloat: return a;
    case PointwiseOp::ToInt: return std::trunc(a);
  }
  return kNaN;
}

}  // namespace

std::string_view name_of(PointwiseOp op) { return kOps[static_cast<size_t>(op)].name; }
int arity_of(PointwiseOp op) { return kOps[static_cast<size_t>(op)].arity; }

PointwiseExpr PointwiseExpr::parse(std::string_view text, int inputs) { return Parser(text, inputs).run(); }

std::string PointwiseExpr::to_string() const {
  const auto first = static_cast<size_t>(inputs);
  std::vector<int> reads(first + code.size(), 0), as_result(first + code.size(), 0);
  std::vector<bool> live(code.size(), false);
  for (int32_t r : results) ++as_result[static_cast<size_t>(r)];
  for (size_t k = code.size(); k-- > 0;) {
    live[k] = reads[first + k] > 0 || as_result[first + k] > 0;
    if (!live[k]) continue;
    for (int32_t r : {code[k].a, code[k].b, code[k].c})
      if (r >= 0) ++reads[static_cast<size_t>(r)];
  }

  std::string out;
  std::vector<int> number_of(code.size(), -1);
  int next = 0;
  const auto begin = [&](char kind, size_t n) {
    if (!out.empty()) out += ';';
    out += fmt::format("{}{}=", kind, n);
  };
  const auto reg = [&](int32_t r) {
    return r < inputs ? fmt::format("i{}", r) : fmt::format("t{}", number_of[static_cast<size_t>(r - inputs)]);
  };
  std::vector<bool> written(results.size(), false);
  for (size_t k = 0; k < code.size(); ++k) {
    if (!live[k]) continue;
    // What only one result reads needs no name of its own.
    if (reads[first + k] == 0 && as_result[first + k] == 1) {
      const auto at = std::find(results.begin(), results.end(), static_cast<int32_t>(first + k)) - results.begin();
      begin('o', static_cast<size_t>(at));
      written[static_cast<size_t>(at)] = true;
    } else {
      number_of[k] = next++;
      begin('t', static_cast<size_t>(number_of[k]));
    }
    const PointwiseInstr& instr = code[k];
    out += name_of(instr.op);
    out += '(';
    if (arity_of(instr.op) == 0) out += number(instr.value);
    const int32_t operands[] = {instr.a, instr.b, instr.c};
    for (int i = 0; i < arity_of(instr.op); ++i) out += (i > 0 ? "," : "") + reg(operands[i]);
    out += ')';
  }
  for (size_t o = 0; o < results.size(); ++o)
    if (!written[o]) {
      begin('o', o);
      out += reg(results[o]);
    }
  return out;
}

std::vector<bool> integer_registers(const PointwiseExpr& expr, const std::vector<DType>& inputs) {
  std::vector<bool> integer;
  for (int i = 0; i < expr.inputs; ++i) {
    const DType t = inputs.at(static_cast<size_t>(i));
    const bool known = t == DType::F32 || t == DType::F16 || t == DType::BF16 || t == DType::I32 || t == DType::Bool;
    if (!known) throw UserError("operand {} of a pointwise expression is {}: f32, f16, bf16, i32 and bool are known", i, name_of(t));
    integer.push_back(is_integer(t));
  }
  for (const PointwiseInstr& instr : expr.code) {
    const auto is_int = [&](int32_t r) { return integer[static_cast<size_t>(r)]; };
    const auto fail = [&](const char* what) { throw UserError("{} {}", name_of(instr.op), what); };
    const auto same = [&](int32_t r, int32_t s) {
      if (is_int(r) != is_int(s)) fail("mixes an integer and a floating operand; convert one with to_float or to_int");
    };
    switch (instr.op) {
      case PointwiseOp::Const:
      case PointwiseOp::ToFloat: integer.push_back(false); continue;
      case PointwiseOp::IConst:
      case PointwiseOp::ToInt: integer.push_back(true); continue;
      case PointwiseOp::Lt:
      case PointwiseOp::Le:
      case PointwiseOp::Eq:
      case PointwiseOp::Ne:
        same(instr.a, instr.b);
        integer.push_back(true);
        continue;
      case PointwiseOp::And:
      case PointwiseOp::Or:
      case PointwiseOp::Not:
        if (!is_int(instr.a) || (instr.b >= 0 && !is_int(instr.b))) fail("takes integers (comparisons give them)");
        integer.push_back(true);
        continue;
      case PointwiseOp::Select:
        if (!is_int(instr.a)) fail("takes an integer condition (comparisons give one)");
        same(instr.b, instr.c);
        integer.push_back(is_int(instr.b));
        continue;
      case PointwiseOp::Clamp:
        same(instr.a, instr.b);
        same(instr.a, instr.c);
        integer.push_back(is_int(instr.a));
        continue;
      default: break;
    }
    if (is_float_only(instr.op) && is_int(instr.a)) fail("takes floating operands; convert integers with to_float");
    if (arity_of(instr.op) == 2) same(instr.a, instr.b);
    integer.push_back(instr.op == PointwiseOp::IsFinite || is_int(instr.a));
  }
  return integer;
}

void evaluate(const PointwiseExpr& expr, const double* inputs, double* results) {
  // Expressions are short; longer ones than this use the heap.
  std::array<double, 64> few;
  std::vector<double> many;
  double* regs = few.data();
  const size_t count = static_cast<size_t>(expr.inputs) + expr.code.size();
  if (count > few.size()) {
    many.resize(count);
    regs = many.data();
  }
  std::copy(inputs, inputs + expr.inputs, regs);
  for (size_t k = 0; k < expr.code.size(); ++k) {
    const PointwiseInstr& instr = expr.code[k];
    const auto at = [&](int32_t r) { return r < 0 ? 0.0 : regs[r]; };
    regs[static_cast<size_t>(expr.inputs) + k] = evaluate_one(instr, at(instr.a), at(instr.b), at(instr.c));
  }
  for (size_t o = 0; o < expr.results.size(); ++o) results[o] = regs[expr.results[o]];
}

}  // namespace hierarchos
