import { readFileSync, writeFileSync } from 'node:fs';
import type { RecordedStep } from './conversation.ts';

function fileOf(chapter: string): URL {
  return new URL(`../../testdata/conversation/${chapter}.jsonl`, import.meta.url);
}

/**
 * Reads the recorded responses of a real kube-apiserver to one chapter, which is a named sequence
 * of requests; each line has the response to one request.
 */
export function readRecording(chapter: string): readonly RecordedStep[] {
  const lines = readFileSync(fileOf(chapter), 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line));
}

export function writeRecording(chapter: string, told: readonly RecordedStep[]): void {
  writeFileSync(fileOf(chapter), told.map((each) => `${JSON.stringify(each)}\n`).join(''));
}
