import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { chapters } from './chapters/index.ts';
import { Conversation, type RecordedStep } from './conversation.ts';
import { differenceOf } from './differences.ts';
import { openEmbeddedServer } from './embedded-server.ts';
import { readRecording } from './recording.ts';
import type { Server } from './server.ts';
import type { Chapter, Step } from './step.ts';

const listed = readFileSync(new URL('../../../docs/embedded-api-differences.md', import.meta.url), 'utf8');

/**
 * A response must equal the recorded one, unless an intended difference is listed for the step:
 * then the response must differ, because otherwise the list is outdated.
 */
function compare(chapter: string, step: Step, ours: RecordedStep, theirs: RecordedStep): void {
  const difference = differenceOf(chapter, step.what);
  if (difference === undefined) {
    assert.deepEqual(ours, theirs);
    return;
  }
  assert.ok(listed.includes(`| ${difference.row} |`), `the document has no row "${difference.row}"`);
  assert.notDeepEqual(ours, theirs, 'it no longer differs');
  if (difference.alike === 'code') assert.equal(ours.code, theirs.code);
}

/**
 * Sends all requests of a chapter, one per step. A failed step may make later steps fail; the
 * responses before it are still compared.
 */
async function converse(server: Server, chapter: Chapter): Promise<readonly RecordedStep[]> {
  using conversation = new Conversation(server, chapter.name);
  await conversation.begin();
  const reported: RecordedStep[] = [];
  for (const step of chapter.steps)
    reported.push(await conversation.run(step).catch((error) => ({ what: step.what, body: String(error) })));
  return reported;
}

describe('the embedded API responds like a recorded real API server', { timeout: 600_000 }, () => {
  let server: Server;
  before(async () => {
    server = await openEmbeddedServer();
  });
  after(async () => server[Symbol.asyncDispose]());

  for (const chapter of chapters)
    describe(chapter.name, () => {
      const recorded = readRecording(chapter.name);
      let reported: readonly RecordedStep[] = [];
      before(async () => {
        reported = await converse(server, chapter);
      });
      it('the recording contains the same steps as the chapters of requests', () => {
        assert.deepEqual(
          recorded.map(({ what }) => what),
          chapter.steps.map(({ what }) => what),
          'record it again',
        );
      });
      for (const [at, step] of chapter.steps.entries())
        it(`step ${at + 1} gets the recorded response: ${step.what}`, () => {
          const [ours, theirs] = [reported[at], recorded[at]];
          assert.ok(ours !== undefined && theirs !== undefined);
          compare(chapter.name, step, ours, theirs);
        });
    });
});
