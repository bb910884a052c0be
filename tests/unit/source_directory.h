// Root of the repository, for tests that read its files (shaders, examples).
#pragma once

#include <filesystem>

namespace hierarchos {

std::filesystem::path source_directory();

}  // namespace hierarchos
