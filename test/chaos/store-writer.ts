/**
 * Writes some thousand changes per second to a store, and reports each when it is durable, until it
 * is killed. usage: store-writer.ts FILE SEED
 *
 *     open VERSION the version at its start
 *     put VERSION NAME NUMBER the object has this number now
 *     gone VERSION NAME the object is deleted
 */
import { apiResources } from '../../src/api/index.ts';
import { pick, realClock, seededRandom } from '../../src/lib/index.ts';
import { StoreRig } from '../fakes/store-rig.ts';

const [path = '', seed = '0'] = process.argv.slice(2);
const tickMs = 5;
const writesInTick = 5;
const clock = realClock();
const random = seededRandom(Number(seed));
const names = Array.from({ length: 500 }, (_, index) => `o${index}`);
const padding = 'x'.repeat(1_500);

// The store keeps few log rows, so that the log is compacted all the time.
const harness = await StoreRig.open(path, { clock, log: { keepRows: 2_000 }, lockWaitMs: 5_000 });
process.stdout.write(`open ${harness.store.restored.version}\n`);
let number = harness.store.restored.version * 1_000;
const end = new AbortController().signal;

const startMs = clock.monotonicMs();
for (let ticks = 1; ; ticks++) {
  for (let count = 0; count < writesInTick; count++) void writeOne();
  await clock.sleep(Math.max(0, startMs + ticks * tickMs - clock.monotonicMs()), end);
}

async function writeOne(): Promise<void> {
  const name = pick(random, names) ?? '';
  // Every second object is of a kind whose writes are not synced immediately.
  const resource = Number(name.slice(1)) % 2 === 0 ? apiResources.pods : apiResources.events;
  const isGoing = harness.get(name, resource) !== undefined && random.next() < 0.2;
  const value = ++number;
  const version = isGoing ? harness.remove(name, resource) : harness.put(name, { value, padding }, resource);
  await harness.store.whenCommitted(version, end);
  process.stdout.write(isGoing ? `gone ${version} ${name}\n` : `put ${version} ${name} ${value}\n`);
}
