extends SceneTree

func _init() -> void:
	var ids := FrazilSnowflake.new()
	print("before: ", ids.next(), " ", FrazilSnowflake.last_error(), ", open: ", ids.open("game server=4711"))
	print("typed: ", unique(Array(ids.fill(999)) + [ids.next()]))
	# These calls pass variants.
	var untyped = ids
	print("untyped: ", unique(Array(untyped.call("fill", 999)) + [untyped.call("next")]))
	print("time: ", absi(ids.unix_ms(ids.next()) - int(Time.get_unix_time_from_system() * 1000)) < 5000)
	print("count: ", ids.fill(0).size(), " ", ids.fill(-1).size(), " ", ids.fill(1 << 60).size())
	print("decode: ", untyped.call("unix_ms", -1), " ", untyped.call("last_error"))
	quit()

func unique(ids: Array) -> int:
	var seen := {}
	for id in ids:
		seen[id] = true
	return seen.size()
