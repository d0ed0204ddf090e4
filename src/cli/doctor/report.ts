import type { Finding, Severity } from './check.ts';

export type Summary = Readonly<Record<Severity, number>>;

export function summarize(findings: readonly Finding[]): Summary {
  const count = (severity: Severity) => findings.filter((finding) => finding.severity === severity).length;
  return { ok: count('ok'), note: count('note'), warn: count('warn'), fail: count('fail') };
}

const lineWidth = 110;

/**
 * Formats findings as text: a block per finding, with severity and name in columns, and consequence
 * and advice below.
 */
export function formatText(findings: readonly Finding[]): string {
  const nameWidth = Math.max(0, ...findings.map((finding) => finding.check.length));
  const indent = 6 + nameWidth + 2;
  const blocks = findings.map((finding) => {
    const head = `${finding.severity.padEnd(4)}  ${finding.check.padEnd(nameWidth)}  `;
    const lines = [head + wrap(finding.finding, indent)];
    if (finding.severity !== 'ok') {
      lines.push(`${' '.repeat(indent)}so: ${wrap(finding.consequence, indent + 4)}`);
      if (finding.advice !== undefined) {
        lines.push(`${' '.repeat(indent)}do: ${wrap(finding.advice, indent + 4)}`);
      }
    }
    return lines.join('\n');
  });
  return `${blocks.join('\n')}\n\n${conclusion(summarize(findings))}\n`;
}

/** Wraps text between words and indents continuation lines to the start of the text. */
function wrap(text: string, indent: number): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > lineWidth - indent) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line].join(`\n${' '.repeat(indent)}`);
}

function conclusion(summary: Summary): string {
  const counts = [
    `${summary.ok} ok`,
    plural(summary.note, 'note'),
    plural(summary.warn, 'warning'),
    plural(summary.fail, 'failure'),
  ].join(', ');
  if (summary.fail > 0) return `${counts}: this machine cannot run pods yet.`;
  return `${counts}: this machine can run pods.`;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export function formatJson(findings: readonly Finding[]): string {
  const checks = findings.map(({ check, ...rest }) => ({ check, ...rest }));
  return `${JSON.stringify({ summary: summarize(findings), checks }, undefined, 2)}\n`;
}
