// sinter/core/error.hpp: the exceptions of the library; each text names the operation, the sizes, and what to do.
#pragma once

#include <stdexcept>
#include <string>

namespace sinter {

/// Base of every exception the library throws on purpose.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Extents that do not fit the operation.
class shape_error : public error {
 public:
  using error::error;
};

/// An index, axis or class label outside its range.
class index_error : public error {
 public:
  using error::error;
};

/// An argument whose value makes no sense, such as a learning rate that is not finite.
class value_error : public error {
 public:
  using error::error;
};

/// A device that is not there, or memory that is not where its type says.
class device_error : public error {
 public:
  using error::error;
};

/// A file that is missing, cut short or not in the expected format.
class io_error : public error {
 public:
  using error::error;
};

/// Misuse of the tape: no graph, a freed graph, a saved tensor that was modified.
class autograd_error : public error {
 public:
  using error::error;
};

/// A device has no memory left for an allocation.
class out_of_memory : public error {
 public:
  using error::error;
};

}  // namespace sinter
