import { before, describe, it } from 'node:test';
import { type Lives, playAgain, playSeeds, seedsUpTo } from './seeds.ts';
import { prepareSimulation } from './simulate.ts';

const seeds = 200;
/** Seeds beyond the regular ones that once found rare bugs. */
const hardSeeds = [289, 1_523, 3_021, 3_107, 5_971, 7_311];
const repeatedSeeds = 20;

describe('the whole kubelet in simulation', () => {
  const lives: Lives = new Map();
  before(prepareSimulation);

  it(`a standalone node holds its invariants under ${seeds} seeds`, () =>
    playSeeds(seedsUpTo(seeds), {}, lives));

  it('a standalone node holds its invariants under seeds that once violated one', () => playSeeds(hardSeeds));

  it('the same seed replays the same history on a standalone node', () =>
    playAgain(seedsUpTo(repeatedSeeds), {}, lives));
});
