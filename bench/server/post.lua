-- POST requests; wrk ... URL -- DEPTH sends DEPTH at once.
wrk.method = "POST"

init = function(args)
   requests = string.rep(wrk.format(), tonumber(args[1] or 1))
end

request = function()
   return requests
end
