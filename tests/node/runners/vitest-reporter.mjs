// Prints one line of JSON for each file: the failures, and the heap after it.
export default class {
  onTestModuleEnd(module) {
    const tests = [...module.children.allTests()]
    const failures = [...module.errors(), ...tests.flatMap(test => test.result().errors ?? [])].map(({ message, stack }) => `${message}\n${stack}`)
    const passed = tests.filter(test => test.result().state === 'passed').length
    console.log(JSON.stringify({ heap: module.diagnostic().heap, passed, failure: failures.join('\n') || null }))
  }
}
