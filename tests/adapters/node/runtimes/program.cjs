require('./body.cjs')(require('frazil'), require('frazil/schema'), require('node:worker_threads'))
