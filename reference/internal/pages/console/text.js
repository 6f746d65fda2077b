// Text that strangers have chosen, and numbers.
import { element } from "./dom.js";

/**
 * Characters that are not seen or reorder text: control and format characters, others that
 * are shown as nothing or as a space, and spaces that a page leaves out.
 */
const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}|^ | $|(?<= ) /gu;

/** Returns a name with its invisible characters written as \u{202E}. */
export const visible = (name) => name.replace(invisible, (c) => `\\u{${c.codePointAt(0).toString(16).toUpperCase()}}`);

/** Returns an element with a name. Its direction does not reach the text around it. */
export const named = (name) => element("bdi", { class: "name" }, visible(name));

/** Returns a whole number with separators: "1,234,567". */
export const whole = (n) => Math.round(n).toLocaleString("en");

/** Returns a rate with one decimal if it is small: "0.4", "37". */
export const rate = (n) => (n > 0 && n < 10 ? n.toFixed(1) : whole(n));

/** Returns an instant as "2026-11-22 04:05:06" in UTC. */
export const stamp = (text) => new Date(text).toISOString().slice(0, 19).replace("T", " ");
