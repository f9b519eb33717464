// One line of JSON for each file: what failed, and the heap behind it.
module.exports = class {
  onTestResult(_, { memoryUsage, numPassingTests, failureMessage }) {
    console.log(JSON.stringify({ heap: memoryUsage, passed: numPassingTests, failure: failureMessage }))
  }
}
