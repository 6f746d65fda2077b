-- Redis runs the scripts, in Lua 5.1.
std = "lua51"
read_globals = {"redis", "KEYS", "ARGV"}
ignore = {"4"} -- blocks of the script have variables of their own, with names of those around them
