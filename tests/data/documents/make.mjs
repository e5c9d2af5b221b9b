// Makes the documents of this folder that libraries of Node.js write; see make-documents.
import { createWriteStream, writeFileSync } from "node:fs";
import { Document, HeadingLevel, Packer, Paragraph, Table, TableCell, TableRow } from "docx";
import { jsPDF } from "jspdf";
import { PDFDocument, StandardFonts } from "pdf-lib";
import PDFKit from "pdfkit";

const TITLE = "Tides of the Bay of Fundy";
const PAGES = [
  "The moon pulls the water of the oceans towards itself, and the earth turns below it. So most coasts see high water twice a day, a little later every time.",
  "Where a bay is shaped like a funnel, the water rises much higher. In the Bay of Fundy the difference between high and low water is sixteen metres, more than anywhere else on earth.",
];
const CHINESE =
  "大熊猫生活在四川的竹林里，主要吃竹子，一天要吃很多。它们不冬眠，冬天会到较低的山谷里去。";
const here = (name) => new URL(name, import.meta.url);

const kit = new PDFKit({ info: { Title: TITLE }, size: "A5" });
kit.pipe(createWriteStream(here("pdfkit.pdf")));
kit.text(PAGES[0]).addPage().text(PAGES[1]);
kit.end();

const js = new jsPDF({ format: "a5" });
js.setProperties({ title: TITLE });
PAGES.forEach((text, number) => {
  if (number) js.addPage();
  js.text(js.splitTextToSize(text, 110), 18, 20);
});
writeFileSync(here("jspdf.pdf"), Buffer.from(js.output("arraybuffer")));

// Five hundred pages, in streams of objects as newer files have them.
const lib = await PDFDocument.create();
lib.setTitle("Five hundred pages");
const font = await lib.embedFont(StandardFonts.TimesRoman);
for (let number = 1; number <= 500; number += 1) {
  lib.addPage([300, 200]).drawText(`This is page ${number} of a long report.`, { x: 20, y: 150, size: 12, font });
}
writeFileSync(here("pdf-lib-500.pdf"), await lib.save({ useObjectStreams: true }));

const cell = (text) => new TableCell({ children: [new Paragraph(text)] });
const rows = [["Place", "Metres"], ["Fundy", "16"]].map((row) => new TableRow({ children: row.map(cell) }));
const document = new Document({
  title: TITLE,
  sections: [
    {
      children: [
        new Paragraph({ text: TITLE, heading: HeadingLevel.HEADING_1 }),
        ...[...PAGES, CHINESE].map((text) => new Paragraph(text)),
        new Table({ rows }),
      ],
    },
  ],
});
writeFileSync(here("docx-js.docx"), await Packer.toBuffer(document));
