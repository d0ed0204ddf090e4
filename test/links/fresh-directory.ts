import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface Fresh {
  /** The directory that is to be removed, with `at` in it. */
  readonly tree: string;
  /** What is swapped with the link. */
  readonly at: string;
  readonly link: string;
  /** Where the link leads. */
  readonly target: string;
}

let number = 0;

/**
 * Makes a tree that was removed anew, and its link. What is written is written aside: the link must not lead the test
 * itself out of the tree. Without effect while there is a tree.
 */
export function makeFresh({ tree, at, link, target }: Fresh): void {
  if (existsSync(tree)) return;
  rmSync(link, { recursive: true, force: true });
  symlinkSync(target, link);
  const stage = `${link}.stage${number++}`;
  mkdirSync(join(stage, 'inner'), { recursive: true });
  for (let file = 0; file < 20; file++) writeFileSync(join(stage, `${file}.log`), 'own\n');
  mkdirSync(dirname(at), { recursive: true });
  renameSync(stage, at);
}
