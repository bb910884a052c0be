// Programs bound to device memory, ready to replay.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/bind.h"
#include "runtime/program.h"
#include "tensor/host_tensor.h"

namespace hierarchos {

// Parameters and states on one device, by name, shared by the Programs of a model (prefill, decode, micro, apply …).
class Storehouse {
 public:
  explicit Storehouse(Backend& backend) : backend_(backend) {}
  Backend& backend() { return backend_; }

  bool has(const std::string& name) const { return entries_.count(name) != 0; }
  // Memory for a tensor of that name, zeroed; the same for the same name. Throws UserError when the type differs.
  Address get(const std::string& name, const Type& type);
  // Row-major, as files have it. If get() was asked for the name in another layout, the tensor is brought into it.
  void upload(const std::string& name, const HostTensor& value);
  // Of tensors in another layout: their values in fp32.
  HostTensor download(const std::string& name) const;
  std::vector<std::string> names() const;
  const Type& type(const std::string& name) const;
  int64_t bytes() const { return bytes_; }
  void zero(const std::string& name);

 private:
  struct Entry {
    Type type;
    Address address = 0;
  };
  struct Block {
    std::unique_ptr<Buffer> buffer;
    int64_t used = 0;
  };
  Address place(int64_t bytes);
  void upload_rows16(Address at, const HostTensor& value);
  Backend& backend_;
  std::map<std::string, Entry> entries_;
  std::vector<Block> blocks_;  // large blocks within the device's limit; tensors are placed one after another
  int64_t bytes_ = 0;
};

// The values of a tensor in a layout other than row-major, as fp32.
HostTensor values_of_layout(const Type& type, Address at, Backend& backend);

class Session {
 public:
  // Places parameters and states in `store` (parameters must be uploaded there before the first run), allocates arena
  // and rings, binds and records. Throws DeviceError stating need and have before anything is allocated.
  Session(std::shared_ptr<Program> program, std::shared_ptr<Storehouse> store);
  ~Session();

  void set_input(const std::string& name, const HostTensor& value);
  template <typename T>
  void set_input(const std::string& name, const std::vector<T>& values);  // I32 or F32 input of that many elements
  void run();
  HostTensor output(const std::string& name);
  void reset();  // states by their reset rule

  // The debug mode: runs step by step, and after each compares the results with the reference's on the same operands.
  // Returns an empty string, or a report naming the first node that differs by more than the tolerance.
  std::string run_checked(double tolerance = 1e-4);

  const Program& program() const { return *program_; }
  const BoundInfo& bound() const;
  Storehouse& store() { return *store_; }

 private:
  void prepare();
  void run_host_step(size_t step);
  struct Impl;
  std::shared_ptr<Program> program_;
  std::shared_ptr<Storehouse> store_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hierarchos
