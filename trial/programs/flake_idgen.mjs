// flake-idgen: the generator of its page's first example, with a number.
import FlakeId from 'flake-idgen'
import { run } from './trial.mjs'

await run(node => new FlakeId({ id: node }), ids => ids.next())
