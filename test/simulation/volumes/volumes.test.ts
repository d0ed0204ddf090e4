import { before, describe, it } from 'node:test';
import { type Lives, playAgain, playSeeds, seedsUpTo } from '../seeds.ts';
import { prepareSimulation } from '../simulate.ts';

const seeds = 25;
const repeatedSeeds = 3;
/** In one somebody who was added to look into a running pod was started before what only visitors have was mounted. */
const hardSeeds = [27];
const mounting = { cluster: 'joined', volumes: 'every-kind' } as const;

describe('the whole kubelet in simulation, with volumes of every kind', () => {
  const lives: Lives = new Map();
  before(prepareSimulation);

  it(`keeps its promises under ${seeds} seeds`, () => playSeeds(seedsUpTo(seeds), mounting, lives));

  it('keeps them under seeds that once broke one', () => playSeeds(hardSeeds, mounting));

  it('lives the same life again under the same seed', () =>
    playAgain(seedsUpTo(repeatedSeeds), mounting, lives));
});
