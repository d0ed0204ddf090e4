import { before, describe, it } from 'node:test';
import { playAgain, playSeeds, seedsUpTo } from '../seeds.ts';
import { prepareSimulation } from '../simulate.ts';

const seeds = 20;
const offered = { devices: 'offered' } as const;

describe('the whole kubelet in simulation, with devices that are added and removed', () => {
  before(prepareSimulation);

  it(`holds its invariants under ${seeds} seeds`, () => playSeeds(seedsUpTo(seeds), offered));

  it('holds its invariants in a cluster', () =>
    playSeeds(seedsUpTo(seeds / 4), { ...offered, cluster: 'joined' }));

  it('replays the same history under the same seed', () => playAgain(seedsUpTo(3), offered, new Map()));
});
