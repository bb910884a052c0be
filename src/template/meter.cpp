#include "template/meter.h"

#include "template/error.h"

namespace hierarchos::jinja {

namespace {
constexpr size_t kBytesPerStep = 256;
}

thread_local Meter* Meter::current_ = nullptr;

void Meter::allocate(size_t bytes) {
  step(static_cast<int64_t>(bytes / kBytesPerStep));
  if (live_ + bytes > limits_.live_bytes)
    limit_error("the template holds more than {} MB of values", limits_.live_bytes >> 20);
  live_ += bytes;
}

void Meter::too_many_steps() const {
  limit_error("the template takes more than {} steps; it probably never ends", limits_.steps);
}

void check_text_size(size_t bytes) {
  const Meter* meter = Meter::current();
  if (meter != nullptr && bytes > meter->limits().text_bytes)
    limit_error("a text would have more than {} MB", meter->limits().text_bytes >> 20);
}

void charge(size_t bytes) {
  if (Meter* meter = Meter::current()) meter->step(static_cast<int64_t>(bytes / kBytesPerStep));
}

}  // namespace hierarchos::jinja
