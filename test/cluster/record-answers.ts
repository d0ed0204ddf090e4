/**
 * Asks a real API server all that the embedded one is compared with, and writes down what it says:
 * `npm run record:answers [conversation[/CHAPTER]|kinds|output|pods]...`, everything unless said.
 */
import { chapters } from '../local-api/differential/chapters/index.ts';
import { Conversation } from '../local-api/differential/conversation.ts';
import { openRealServer } from '../local-api/differential/real-server.ts';
import { writeRecording } from '../local-api/differential/recording.ts';
import { recordKindAnswers } from './kind-answers.ts';
import { recordOutput } from './output/record.ts';
import { recordPodAnswers } from './pod-answers.ts';
import { noCluster } from './programs.ts';

const wanted = process.argv.slice(2);

function isWanted(name: string): boolean {
  return wanted.length === 0 || wanted.includes(name);
}

async function recordConversation(): Promise<void> {
  await using server = await openRealServer();
  for (const chapter of chapters) {
    if (!isWanted('conversation') && !isWanted(`conversation/${chapter.name}`)) continue;
    const told = await Conversation.runAll(server, chapter);
    writeRecording(chapter.name, told);
    console.log(`${chapter.name}: ${told.length}`);
  }
}

const missing = noCluster();
if (missing !== false) throw new Error(`Cannot start a control plane: ${missing}`);
if (wanted.length === 0 || wanted.some((name) => name.startsWith('conversation'))) await recordConversation();
if (isWanted('kinds')) await recordKindAnswers();
if (isWanted('output')) await recordOutput();
if (isWanted('pods')) await recordPodAnswers();
