// A non-owning reference to something callable: two words, no allocation. Valid while the callable lives, as a temporary
// passed as an argument does for the call; never keep one.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace hierarchos {

template <typename Signature>
class function_ref;

template <typename R, typename... Args>
class function_ref<R(Args...)> {
 public:
  template <typename F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, function_ref> && std::is_object_v<std::remove_reference_t<F>> &&
             std::is_invocable_r_v<R, F&, Args...>)
  function_ref(F&& f)  // NOLINT(bugprone-forwarding-reference-overload): constrained above
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> R {
          return std::invoke(*static_cast<std::remove_reference_t<F>*>(object), std::forward<Args>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

}  // namespace hierarchos
