import { before, describe, it } from 'node:test';
import { type Lives, playAgain, playSeeds, seedsUpTo } from './seeds.ts';
import { prepareSimulation } from './simulate.ts';

const seeds = 40;
const repeatedSeeds = 5;
const hardSeeds = [205];
const joined = { cluster: 'joined' } as const;
/**
 * Options for a seed that once violated a rule: sandboxes are lost while containers with their own
 * restart policies run, and a container with policy Never was restarted.
 */
const ownPolicies = { ...joined, always: ['policies'], trouble: 'runtime' } as const;

describe('the whole kubelet in simulation, in a cluster', () => {
  const lives: Lives = new Map();
  before(prepareSimulation);

  it(`a cluster node holds its invariants under ${seeds} seeds`, () =>
    playSeeds(seedsUpTo(seeds), joined, lives));

  it('a cluster node holds its invariants under seeds that once violated one', () =>
    playSeeds(hardSeeds, joined));

  it('a cluster node holds its invariants with restart policies per container', () =>
    playSeeds([3], ownPolicies));

  it('the same seed replays the same history in a cluster', () =>
    playAgain(seedsUpTo(repeatedSeeds), joined, lives));
});
