import { before, describe, it } from 'node:test';
import { type Lives, playAgain, playSeeds, seedsUpTo } from './seeds.ts';
import { prepareSimulation } from './simulate.ts';

const seeds = 200;
/** Each showed a bug once: rare ones, far behind the seeds that are always played. */
const hardSeeds = [289, 1_523, 3_021, 3_107, 5_971, 7_311];
const repeatedSeeds = 20;

describe('the whole kubelet in simulation', () => {
  const lives: Lives = new Map();
  before(prepareSimulation);

  it(`keeps its promises under ${seeds} seeds`, () => playSeeds(seedsUpTo(seeds), {}, lives));

  it('keeps them under seeds that once broke one', () => playSeeds(hardSeeds));

  it('lives the same life again under the same seed', () => playAgain(seedsUpTo(repeatedSeeds), {}, lives));
});
