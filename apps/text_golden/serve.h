#pragma once

namespace hierarchos::text_golden {

// Answers requests on standard input until it ends.
void serve();

}  // namespace hierarchos::text_golden
