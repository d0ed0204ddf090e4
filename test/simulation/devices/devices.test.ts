import { before, describe, it } from 'node:test';
import { playAgain, playSeeds, seedsUpTo } from '../seeds.ts';
import { prepareSimulation } from '../simulate.ts';

const seeds = 20;
const offered = { devices: 'offered' } as const;

describe('the whole kubelet in simulation, with devices that are added and removed', () => {
  before(prepareSimulation);

  it(`a node with devices holds its invariants under ${seeds} seeds`, () =>
    playSeeds(seedsUpTo(seeds), offered));

  it('a cluster node with devices holds its invariants', () =>
    playSeeds(seedsUpTo(seeds / 4), { ...offered, cluster: 'joined' }));

  it('the same seed replays the same history with devices', () =>
    playAgain(seedsUpTo(3), offered, new Map()));
});
