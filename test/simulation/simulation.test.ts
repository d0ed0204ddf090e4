import { before, describe, it } from 'node:test';
import { type Lives, playAgain, playSeeds, seedsUpTo } from './seeds.ts';
import { prepareSimulation } from './simulate.ts';

const seeds = 200;
/** Each of these seeds found a bug once: rare ones, beyond the seeds that always run. */
const hardSeeds = [289, 1_523, 3_021, 3_107, 5_971, 7_311];
const repeatedSeeds = 20;

describe('the whole kubelet in simulation', () => {
  const lives: Lives = new Map();
  before(prepareSimulation);

  it(`holds its invariants under ${seeds} seeds`, () => playSeeds(seedsUpTo(seeds), {}, lives));

  it('holds its invariants under seeds that once violated one', () => playSeeds(hardSeeds));

  it('replays the same history under the same seed', () => playAgain(seedsUpTo(repeatedSeeds), {}, lives));
});
