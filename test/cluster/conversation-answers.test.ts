import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { chapters } from '../local-api/differential/chapters/index.ts';
import { Conversation } from '../local-api/differential/conversation.ts';
import { differenceOf } from '../local-api/differential/differences.ts';
import { openRealServer } from '../local-api/differential/real-server.ts';
import { readRecording } from '../local-api/differential/recording.ts';
import type { Server } from '../local-api/differential/server.ts';
import { noCluster, withoutStreamedLists } from './programs.ts';

/** The part (chapter) of the recorded requests in which lists are streamed as watches. */
const streamed = 'watches';

/**
 * The recorded responses of a real API server must still be current; after a change, record them
 * again.
 */
describe('a real API server responds to the recorded requests as recorded', { skip: noCluster() }, () => {
  let server: Server;
  before(async () => {
    server = await openRealServer();
  });
  after(async () => server[Symbol.asyncDispose]());

  for (const chapter of chapters)
    it(chapter.name, { skip: chapter.name === streamed && withoutStreamedLists() }, async () => {
      const recorded = readRecording(chapter.name);
      const reported = await Conversation.runAll(server, chapter);
      for (const [at, one] of reported.entries()) {
        // Responses that the embedded API deliberately does not reproduce may differ from the
        // recording.
        const isFree = differenceOf(chapter.name, one.what) !== undefined;
        if (isFree) assert.equal(one.code, recorded[at]?.code, one.what);
        else assert.deepEqual(one, recorded[at], one.what);
      }
    });
});
