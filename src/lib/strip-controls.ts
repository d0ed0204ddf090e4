/**
 * Text from outside without the characters that act on a terminal: C0 controls except tab and newline, DEL, C1 controls.
 * What containers, runtimes and other users' processes say is shown to administrators.
 */
export function stripControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to remove
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '').toWellFormed();
}
