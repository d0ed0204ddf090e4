export interface Mount {
  readonly mountPoint: string;
  /** The directory of the mounted file system that is visible there. */
  readonly root: string;
  /** Whether what is mounted below it is seen wherever else it is mounted. */
  readonly isShared: boolean;
  readonly fsType: string;
  /** Those of the file system, not of the mount: for cgroups the controllers. */
  readonly superOptions: readonly string[];
}

/** Reads the text of /proc/self/mountinfo; spaces and the like in paths stand there as octal escapes. */
export function parseMountinfo(text: string): Mount[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [before = '', after = ''] = line.split(' - ');
      const fields = before.split(' ');
      const [fsType = '', , superOptions = ''] = after.split(' ');
      return {
        root: unescapePath(fields[3] ?? ''),
        mountPoint: unescapePath(fields[4] ?? ''),
        isShared: fields.slice(6).some((field) => field.startsWith('shared:')),
        fsType,
        superOptions: superOptions.split(','),
      };
    });
}

/** Only ASCII is ever escaped: blank, tab, newline, backslash and the number sign. */
function unescapePath(path: string): string {
  return path.replaceAll(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)));
}
