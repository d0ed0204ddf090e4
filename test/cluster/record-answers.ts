/**
 * Records all responses of a real API server with which the embedded API is compared: `npm run
 * record:answers [conversation[/CHAPTER]|kinds|output|pods]...`, everything by default.
 */
import { chapters } from '../local-api/differential/chapters/index.ts';
import { Conversation } from '../local-api/differential/conversation.ts';
import { openRealServer } from '../local-api/differential/real-server.ts';
import { writeRecording } from '../local-api/differential/recording.ts';
import { recordKindAnswers } from './kind-answers.ts';
import { recordOutput } from './output/record.ts';
import { recordPodAnswers } from './pod-answers.ts';
import { noCluster } from './programs.ts';

const expected = process.argv.slice(2);

function isWanted(name: string): boolean {
  return expected.length === 0 || expected.includes(name);
}

async function recordConversation(): Promise<void> {
  await using server = await openRealServer();
  for (const chapter of chapters) {
    if (!isWanted('conversation') && !isWanted(`conversation/${chapter.name}`)) continue;
    const reported = await Conversation.runAll(server, chapter);
    writeRecording(chapter.name, reported);
    console.log(`${chapter.name}: ${reported.length}`);
  }
}

const missing = noCluster();
if (missing !== false) throw new Error(`Cannot start a control plane: ${missing}`);
if (expected.length === 0 || expected.some((name) => name.startsWith('conversation')))
  await recordConversation();
if (isWanted('kinds')) await recordKindAnswers();
if (isWanted('output')) await recordOutput();
if (isWanted('pods')) await recordPodAnswers();
