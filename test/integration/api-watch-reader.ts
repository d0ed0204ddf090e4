/**
 * Consumes a watch to its end in a separate process and reports the heap growth over the last
 * 100,000 events.
 */

import { apiResources } from '../../src/api/index.ts';
import { clientFor, never } from './api-fixture.ts';

const [path = ''] = process.argv.slice(2);
using client = clientFor(path);

const warmUp = 10_000;
const measured = 100_000;
let events = 0;
let before = 0;
let after = 0;

function heapNow(): number {
  // The first garbage collection finds dead objects, the second one frees them.
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed + process.memoryUsage().external;
}

const query = { resource: apiResources.pods, timeoutSeconds: 300, begin: 'at-version' } as const;
for await (const _event of client.watch(query, never())) {
  events++;
  if (events === warmUp) before = heapNow();
  if (events === warmUp + measured) after = heapNow();
}

console.log(JSON.stringify({ events, growth: after - before }));
