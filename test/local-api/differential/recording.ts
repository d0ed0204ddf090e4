import { readFileSync, writeFileSync } from 'node:fs';
import type { Told } from './conversation.ts';

function fileOf(chapter: string): URL {
  return new URL(`../../testdata/conversation/${chapter}.jsonl`, import.meta.url);
}

/** The responses of a real server in a chapter, one line per step. */
export function readTold(chapter: string): readonly Told[] {
  const lines = readFileSync(fileOf(chapter), 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line));
}

export function writeTold(chapter: string, told: readonly Told[]): void {
  writeFileSync(fileOf(chapter), told.map((one) => `${JSON.stringify(one)}\n`).join(''));
}
