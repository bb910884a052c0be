// The packed scales of Q4_K and Q5_K.
#pragma once

#include <cstdint>

namespace hierarchos {

// Six-bit scale and minimum of sub-block j of 8, from the 12 bytes that hold them.
inline void k_scale_min(int j, const uint8_t* q, int* scale, int* min) {
  if (j < 4) {
    *scale = q[j] & 63;
    *min = q[j + 4] & 63;
  } else {
    *scale = (q[j + 4] & 15) | ((q[j - 4] >> 6) << 4);
    *min = (q[j + 4] >> 4) | ((q[j] >> 6) << 4);
  }
}

}  // namespace hierarchos
