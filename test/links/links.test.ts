import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Canary, canaryText, filesWithCanary } from './canary.ts';
import { hostPaths } from './host-attacks.ts';
import { LinkSwapper } from './link-swapper.ts';
import { logPaths } from './log-attacks.ts';
import { volumePaths } from './volume-attacks.ts';

/** How long each path is attacked; `npm run test:links` attacks longer. */
const attackMs = Number(process.env['KUBELING_ATTACK_SECONDS'] ?? 1.5) * 1_000;
const leastRounds = 5;
const notRoot = process.getuid?.() === 0 ? false : 'needs root';

/** All paths that kubeling opens by name, with who can change each path and what protects it. */
const places = [...logPaths, ...volumePaths, ...hostPaths];

describe('links planted at a path while kubeling uses it', { skip: notRoot }, () => {
  let base: string;

  before(async () => {
    base = await mkdtemp(join(tmpdir(), 'klg-links-'));
  });
  after(() => execFileSync('rm', ['-rf', base]));

  for (const [number, { place, attack }] of places.entries()) {
    if (attack === undefined) continue;
    it(`a planted link is not followed: ${place}`, async (t) => {
      const root = join(base, String(number), 'own');
      await mkdir(root, { recursive: true });
      const canary = new Canary(join(base, String(number), 'outside'));
      const { swaps, act } = await attack({ root, canary });
      const outcomes = new Map<string, number>();
      const swapper = new LinkSwapper(swaps);
      try {
        await swapper.begun();
        const end = performance.now() + attackMs;
        for (let rounds = 0; rounds < leastRounds || performance.now() < end; rounds++) {
          const outcome = await act().then((text) => {
            assert.ok(!text.includes(canaryText.trim()), 'the text of the canary was read');
            return 'done';
          }, outcomeOf);
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        }
      } finally {
        await swapper[Symbol.asyncDispose]();
      }
      const reported = `${swapper.rounds} swaps: ${JSON.stringify([...outcomes])}`;
      t.diagnostic(reported);
      const [now, was] = canary.compare();
      assert.equal(now, was, reported);
      assert.deepEqual(filesWithCanary(root), [], reported);
      assert.ok((outcomes.get('done') ?? 0) > 0, reported);
    });
  }

  it('every attacked path is listed once, with who can change it and what protects it', () => {
    const names = places.map(({ place }) => place);
    assert.deepEqual(names, [...new Set(names)]);
    for (const { changedBy, protectedBy, place } of places)
      assert.ok(changedBy !== '' && protectedBy !== '', place);
  });
});

/**
 * The operation may be rejected, but neither an error of the test itself nor a followed link is
 * accepted.
 */
function outcomeOf(error: unknown): string {
  if (error instanceof assert.AssertionError || !(error instanceof Error)) throw error;
  if ('code' in error) return String(error.code);
  if (error.message.startsWith('a directory was moved')) return 'moved';
  throw error;
}
