/** How long tasks have waited for something, in microseconds, and in what share of the last while. */
export interface PressureFigures {
  readonly total: number;
  readonly avg10: number;
  readonly avg60: number;
  readonly avg300: number;
}

/** Of some tasks, and of all of them at once. */
export interface Pressure {
  readonly some: PressureFigures;
  readonly full: PressureFigures;
}

const none: PressureFigures = { total: 0, avg10: 0, avg60: 0, avg300: 0 };

/** From the text of a `.pressure` file or one below /proc/pressure; undefined when it says nothing. */
export function pressureIn(text: string | undefined): Pressure | undefined {
  if (text === undefined) return undefined;
  const some = figuresIn(text, someLine);
  return some === undefined ? undefined : { some, full: figuresIn(text, fullLine) ?? none };
}

const figures = 'avg10=(\\S+) avg60=(\\S+) avg300=(\\S+) total=(\\d+)';
const someLine = new RegExp(`^some ${figures}`, 'm');
const fullLine = new RegExp(`^full ${figures}`, 'm');

function figuresIn(text: string, kind: RegExp): PressureFigures | undefined {
  const line = kind.exec(text);
  if (line === null) return undefined;
  const [, avg10, avg60, avg300, total] = line.map(Number);
  return { total: total ?? 0, avg10: avg10 ?? 0, avg60: avg60 ?? 0, avg300: avg300 ?? 0 };
}
