import { createHash } from 'node:crypto';

/**
 * Project IDs of kubeling: far from those assigned manually and from those of the Go kubelet, which
 * counts up from 2^20.
 */
export const firstProject = 0x4000_0000;
export const lastProject = 0x7fff_ffff;

export function isOurProject(id: number): boolean {
  return id >= firstProject && id <= lastProject;
}

/** Returns an unused project ID, usually the same for a directory. */
export function freeProject(directory: string, taken: ReadonlySet<number>): number {
  const count = lastProject - firstProject + 1;
  const wished = createHash('sha256').update(directory).digest().readUInt32BE() % count;
  for (let step = 0; step <= taken.size; step++) {
    const id = firstProject + ((wished + step) % count);
    if (!taken.has(id)) return id;
  }
  throw new Error('all numbers of projects are taken');
}

/** Reads the project IDs of /etc/projects, whose lines are `number:directory`. */
export function projectsOf(text: string): readonly number[] {
  return numbersIn(text, /^\s*(\d+):/);
}

/** Reads the project IDs of /etc/projid, whose lines are `name:number`. */
export function namedProjectsOf(text: string): readonly number[] {
  return numbersIn(text, /^[^#:]+:(\d+)\s*$/);
}

/** Reads the project IDs in the output of repquota(8): projects with a file or a limit. */
export function reportedProjects(text: string): readonly number[] {
  return numbersIn(text, /^#(\d+)\s+[-+]{2}\s/);
}

/** Reads the project of each directory from the output of lsattr(1); 0 is none. */
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
