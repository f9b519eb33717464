// The private servers that run.sh starts.

/** Returns the URL of a server: 'POSTGRESQL' or 'MARIADB'. */
export function serverUrl(name) {
  const url = process.env[`FRAZIL_TEST_${name}`]
  if (!url) {
    throw new Error(`FRAZIL_TEST_${name} is not set: tests/adapters/node/run.sh starts the servers`)
  }
  return url
}
