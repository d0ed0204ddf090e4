import { before, describe, it } from 'node:test';
import { playAgain, playSeeds, seedsUpTo } from '../seeds.ts';
import { prepareSimulation } from '../simulate.ts';

const seeds = 20;
const offered = { devices: 'offered' } as const;

describe('the whole kubelet in simulation, with devices that come and go', () => {
  before(prepareSimulation);

  it(`keeps its promises under ${seeds} seeds`, () => playSeeds(seedsUpTo(seeds), offered));

  it('keeps them in a cluster', () => playSeeds(seedsUpTo(seeds / 4), { ...offered, cluster: 'joined' }));

  it('lives the same life again under the same seed', () => playAgain(seedsUpTo(3), offered, new Map()));
});
