// Prints one line of JSON for each file: the failures, and the heap after it.
module.exports = class {
  onTestResult(_, { memoryUsage, numPassingTests, failureMessage }) {
    console.log(JSON.stringify({ heap: memoryUsage, passed: numPassingTests, failure: failureMessage }))
  }
}
