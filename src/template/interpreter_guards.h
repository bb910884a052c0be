// Scopes of the interpreter's own state.
#pragma once

#include <utility>

#include "template/interpreter.h"

namespace hierarchos::jinja {

// Bounds the recursion of this program's own functions.
class Interpreter::Deeper {
 public:
  explicit Deeper(Interpreter& interpreter) : depth_(interpreter.depth_) {
    constexpr int most = 2000;
    if (++depth_ > most) {
      --depth_;
      limit_error("the template calls itself or nests too deeply");
    }
  }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  int& depth_;
};

// What is written goes into another text.
class Interpreter::Capture {
 public:
  Capture(Interpreter& interpreter, std::string& into)
      : interpreter_(interpreter), outside_(std::exchange(interpreter.out_, &into)) {}
  ~Capture() { interpreter_.out_ = outside_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

 private:
  Interpreter& interpreter_;
  std::string* outside_;
};

// A call of a macro, a block or a recursive loop, inside others.
class Call {
 public:
  Call(int& calls, int most) : calls_(calls) {
    if (++calls_ > most) {
      --calls_;
      limit_error("calls are nested more than {} deep", most);
    }
  }
  ~Call() { --calls_; }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  int& calls_;
};

// The text that a filter without input works on.
class BlockText {
 public:
  BlockText(Value& place, Value text) : place_(place), outside_(std::exchange(place, std::move(text))) {}
  ~BlockText() { place_ = std::move(outside_); }
  BlockText(const BlockText&) = delete;
  BlockText& operator=(const BlockText&) = delete;

 private:
  Value& place_;
  Value outside_;
};

}  // namespace hierarchos::jinja
