// Errors that end a launch. Everything that does not (hazards, races, late data) is a Finding.
#pragma once

#include <stdexcept>
#include <string>

namespace zyfa::emulator {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Bad ELF, metadata or descriptor.
struct CodeObjectError : Error {
  using Error::Error;
};

// Bytes that are no gfx950 instruction.
struct DecodeError : Error {
  using Error::Error;
};

// Access outside every allocation, unimplemented instruction, deadlock, runaway loop, bad launch.
struct LaunchError : Error {
  using Error::Error;
};

// Throws a LaunchError with this text.
[[noreturn]] void fail(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

}  // namespace zyfa::emulator
