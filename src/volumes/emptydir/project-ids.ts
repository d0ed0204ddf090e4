import { createHash } from 'node:crypto';

/** Ours: far from those people give by hand, and from those of the Go kubelet, which count up from 2^20. */
export const firstProject = 0x4000_0000;
export const lastProject = 0x7fff_ffff;

export function isOurProject(id: number): boolean {
  return id >= firstProject && id <= lastProject;
}

/** One that nobody has; mostly the same for a directory each time. */
export function freeProject(directory: string, taken: ReadonlySet<number>): number {
  const count = lastProject - firstProject + 1;
  const wished = createHash('sha256').update(directory).digest().readUInt32BE() % count;
  for (let step = 0; step <= taken.size; step++) {
    const id = firstProject + ((wished + step) % count);
    if (!taken.has(id)) return id;
  }
  throw new Error('all numbers of projects are taken');
}

/** The numbers in /etc/projects, whose lines are `number:directory`. */
export function projectsOf(text: string): readonly number[] {
  return numbersIn(text, /^\s*(\d+):/);
}

/** The numbers in /etc/projid, whose lines are `name:number`. */
export function namedProjectsOf(text: string): readonly number[] {
  return numbersIn(text, /^[^#:]+:(\d+)\s*$/);
}

/** The numbers that repquota(8) lists: of projects that have any file, or a limit. */
export function reportedProjects(text: string): readonly number[] {
  return numbersIn(text, /^#(\d+)\s+[-+]{2}\s/);
}

/** The projects of directories as lsattr(1) tells them, by directory; 0 is none. */
export function listedProjects(text: string): ReadonlyMap<string, number> {
  const found = text.split('\n').flatMap((line) => {
    const [, id, directory] = /^\s*(\d+)\s+\S+\s(.*)$/.exec(line) ?? [];
    return directory === undefined ? [] : [[directory, Number(id)] as const];
  });
  return new Map(found);
}

function numbersIn(text: string, line: RegExp): readonly number[] {
  return text.split('\n').flatMap((one) => {
    const [, number] = line.exec(one) ?? [];
    return number === undefined ? [] : [Number(number)];
  });
}
