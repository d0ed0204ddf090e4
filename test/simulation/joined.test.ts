import { before, describe, it } from 'node:test';
import { type Lives, playAgain, playSeeds, seedsUpTo } from './seeds.ts';
import { prepareSimulation } from './simulate.ts';

const seeds = 40;
const repeatedSeeds = 5;
const hardSeeds = [205];
const joined = { cluster: 'joined' } as const;
/** Sandboxes are lost under containers with policies of their own: one that never comes back came back. */
const ownPolicies = { ...joined, always: ['policies'], trouble: 'runtime' } as const;

describe('the whole kubelet in simulation, in a cluster', () => {
  const lives: Lives = new Map();
  before(prepareSimulation);

  it(`keeps its promises under ${seeds} seeds`, () => playSeeds(seedsUpTo(seeds), joined, lives));

  it('keeps them under seeds that once broke one', () => playSeeds(hardSeeds, joined));

  it('keeps them where each container says whether it comes back', () => playSeeds([3], ownPolicies));

  it('lives the same life again under the same seed', () =>
    playAgain(seedsUpTo(repeatedSeeds), joined, lives));
});
